// Which line of the user's program a line of PTX stands for, where it is the user's own: inline PTX begins with a
// comment that holds its place, between the comments that the code generator puts around inline assembly.
//
//     // begin inline asm
//     // k.cpp:12
//     { add.f32 %r1, %r2, %r3; }
//     // end inline asm
#pragma once
#include <string>

namespace kiln::rt {

/// "k.cpp:12" for line `line` (from 1) of `ptx`; empty where it is no inline PTX of the user's.
std::string inline_ptx_place(const std::string& ptx, int line);
/// "k.cpp:12: error: inline_ptx: " for the first line of `ptx` that an assembler's log names and that is the user's;
/// else empty.
std::string blamed_place(const std::string& log, const std::string& ptx);

}  // namespace kiln::rt
