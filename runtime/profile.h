// Profile: what kernels did on the simulator, by kernel, by line of the user's program and by PTX instruction; as a
// table, as JSON and as an annotated listing in HTML.
//
// Figures are counts of work, not times: they are the same on every run and for any number of host threads.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/device.h"
#include "runtime/inst_class.h"

namespace kiln {

struct Profile {
  struct Instruction {
    std::uint32_t ptx_line = 0;
    std::string text;
    InstClass kind = InstClass::Other;
    Counters counters;
  };
  /// A line of the user's program. All that the PTX gives no place for is one Line of no file.
  struct Line {
    std::string file;
    std::uint32_t line = 0;
    Counters counters;
    InstMix mix{};
    std::vector<Instruction> instructions;  ///< by PTX line; those never executed too
  };
  /// The launches of one kernel: of one name and one PTX text.
  struct Kernel {
    std::string name, device;
    std::array<std::uint32_t, 3> grid{}, block{},
        cluster{};                   ///< of the last launch; threads of a block, blocks of a cluster
    std::uint32_t shared_bytes = 0;  ///< static and dynamic, of the last launch
    Counters counters;
    InstMix mix{};
    std::map<std::string, std::uint64_t> flop;  ///< matrix operations by the type of the factors
    std::vector<Line> lines;                    ///< by file and line
    std::string ptx;
  };
  std::vector<Kernel> kernels;  ///< in order of first launch
};

/// Bytes asked for over the bytes of the sectors that they lie in: 1 where every byte that moves is used, above 1 where
/// lanes share bytes. 0 without accesses.
double coalescing_read(const Counters&);
double coalescing_written(const Counters&);
/// Lanes at an instruction, of 32, on average; those that no predicate switched off.
double average_active_lanes(const Counters&);
double average_executing_lanes(const Counters&);

/// What the rows of a table are.
enum class ProfileBy : std::uint8_t { Kernel, Line, Ptx };

/// For each kernel its totals and a table whose rows have the most instructions first. Lines are quoted where their
/// files can be read. `most`: rows of a table, 0: all.
std::string to_table(const Profile&, ProfileBy by = ProfileBy::Line, std::size_t most = 0);
/// The schema is in docs/simulator.md.
std::string to_json(const Profile&);
/// One file that needs no other: each line of the user's program beside its counts, coloured by one of them, with the
/// PTX behind it. Without the user's files it shows the PTX.
std::string to_html(const Profile&);

/// Writes to_json, to_table or to_html as the name ends in .json, .txt or .html. A reader sees the whole file or none.
/// Throws UserError: another name, a file that cannot be written.
void write_profile(const Profile&, const std::filesystem::path&);

}  // namespace kiln
