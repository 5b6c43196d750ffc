// The debugger's terminal: its commands and what it prints.
#include <regex>

#include "tests/sim/debugger_fixture.h"

namespace kiln::test {
namespace {

using testing::HasSubstr;

class ConsoleTest : public DebuggerTest {
 protected:
  std::string session(const std::string& commands) {
    std::istringstream in(commands);
    std::ostringstream text;
    debugger.break_kernel("");
    debugger.on_stop(debug::console(debugger, in, text, false));
    run();
    return std::regex_replace(text.str(), std::regex("0x[0-9a-f]{12,16}"), "ADDRESS");
  }
};

TEST_F(ConsoleTest, RunsASession) {
  EXPECT_EQ(session("b 13 if block 1 warp 1 lane 4\nc\np %r3\np/u32 %r3\np %tid.x\nwhere\nsi 2\np %r6\nx/2u32 box+128\n"
                    "x/u32 shared %r4\ni b\nd\ns\nbogus\np %r99\np x\nx/u32 0x40\nc\n"),
            R"(breakpoint 1
demo, block (0, 0, 0), warp 0, lane 0
demo.cu:10
ptx:20: ld.param.u64 %rd1, [out]
(kiln) b 13 if block 1 warp 1 lane 4
breakpoint 2: /src/app/demo.cu:13 block (1, 0, 0) warp 1 lane 4
(kiln) c
breakpoint 2
demo, block (1, 0, 0), warp 1, lane 4
demo.cu:13
ptx:32: ld.shared.b32 %r6, [%r4]
(kiln) p %r3
b32 %r3 = 0x00000088 (136)
(kiln) p/u32 %r3
b32 %r3 = 136
(kiln) p %tid.x
u32 %tid.x = 36
(kiln) where
breakpoint 2
demo, block (1, 0, 0), warp 1, lane 4
demo.cu:13
ptx:32: ld.shared.b32 %r6, [%r4]
active lanes 0xffffffff
(kiln) si 2
step
demo, block (1, 0, 0), warp 1, lane 4
demo.cu:5
ptx:9: ld.param.b32 %r1, [x]
(kiln) p %r6
b32 %r6 = 0x00000088 (136)
(kiln) x/2u32 box+128
0x480: 132 133
(kiln) x/u32 shared %r4
0x490: 136
(kiln) i b
1: any kernel
2: /src/app/demo.cu:13 block (1, 0, 0) warp 1 lane 4
(kiln) d
(kiln) s
step
demo, block (1, 0, 0), warp 1, lane 4
demo.cu:6
ptx:12: st.param.b32 [twice], %r2
(kiln) bogus
error: there is no command 'bogus'; help lists them
(kiln) p %r99
error: kernel demo has no register %r99
(kiln) p x
error: there is no 'x' here; variables: none; parameters: out
(kiln) x/u32 0x40
error: 4 bytes at 0x40 of global memory: 64 bytes from the null address
(kiln) c
)");
}

TEST_F(ConsoleTest, RunsOnAtTheEndOfTheInput) {
  EXPECT_EQ(session("c\n"), R"(breakpoint 1
demo, block (0, 0, 0), warp 0, lane 0
demo.cu:10
ptx:20: ld.param.u64 %rd1, [out]
(kiln) c
)");
  EXPECT_THAT(session("p/u16 %tid.x all"), testing::EndsWith(R"((kiln) p/u16 %tid.x all
u32 %tid.x, lanes 0 to 31
             0             1             2             3             4             5             6             7
             8             9            10            11            12            13            14            15
            16            17            18            19            20            21            22            23
            24            25            26            27            28            29            30            31
end of input: the kernel goes on without the debugger
)"));
}

TEST_F(ConsoleTest, Watches) {
  out.fill_bytes(0);
  EXPECT_EQ(session("wa out + 280\ni b\nc\nw\nf warp 1\nl\nptx\nfin\ni p"), R"(breakpoint 1
demo, block (0, 0, 0), warp 0, lane 0
demo.cu:10
ptx:20: ld.param.u64 %rd1, [out]
(kiln) wa out + 280
2: watch of 4 bytes at ADDRESS of global memory
(kiln) i b
1: any kernel
2: watch of 4 bytes at ADDRESS of global memory
(kiln) c
watch 2: 4 bytes at ADDRESS of global memory changed from 00000000 to 000000d7
demo, block (1, 0, 0), warp 0, lane 6
demo.cu:16
ptx:53: st.global.b32 [%rd3], %r7
(kiln) w
* block (1, 0, 0) warp 0 lanes 0xffffffff: ready, /src/app/demo.cu:16 (ptx line 53: st.global.b32 [%rd3], %r7)
  block (1, 0, 0) warp 1 lanes 0x00000000: has exited
(kiln) f warp 1
block (1, 0, 0), warp 1, lane 6
(kiln) l
error: cannot read /src/app/demo.cu
(kiln) ptx
      49    mov.u32 %r9, %ntid.x;
      50    mad.lo.s32 %r10, %r2, %r9, %r1;
      51    mul.wide.u32 %rd2, %r10, 4;
      52    add.s64 %rd3, %rd1, %rd2;
      53    st.global.b32 [%rd3], %r7;
      54    .loc 1 17 1
->    55    ret;
      56  }
(kiln) fin
block (1, 0, 0) has finished
demo, block (1, 0, 0), warp 0, lane 0, 0 lanes active
demo.cu:17
ptx:55: ret
(kiln) i p
b64 out = ADDRESS
end of input: the kernel goes on without the debugger
)");
}

TEST_F(ConsoleTest, AnswersWhateverIsTyped) {
  std::string lines;
  for (const char* command : {"b", "wa", "rw", "aw", "d", "p", "x", "l", "ptx", "f", "w", "i", "h", "s", "si"})
    for (const char* rest : {"",
                             " 9",
                             " -1",
                             " 99999999999999999999999",
                             " :",
                             " a:b",
                             " a:1 if lane 32",
                             " if",
                             " [",
                             " %",
                             " %r1",
                             " + + +",
                             " out + out",
                             " block 1,,2",
                             "/ out",
                             "/99999999999999 out",
                             "/3f31 out",
                             "/4f64 local 0",
                             " shared 0xffffffffffffffff 8",
                             " \xff\x01"})
      lines += std::string(command) + rest + "\n";
  const std::string text = session(lines);
  EXPECT_THAT(text, HasSubstr("error: "));
}

}  // namespace
}  // namespace kiln::test
