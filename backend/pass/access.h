// Accesses: the loads and stores of tiles in a function, from which Exec and layouts are chosen.
#pragma once
#include <vector>

#include "backend/ir/function.h"
#include "backend/pass/axis_info.h"

namespace kiln::ir {

struct Access {
  InstId inst = kNone;
  Value ptr;
  bool store = false;
  Shape shape;
  int element_bytes = 1;

  bool operator==(const Access&) const = default;
};

/// In program order; scalar accesses are left out.
std::vector<Access> tile_accesses(const Function& f);

/// Elements that one vector access along `axis` can move at most: contiguous, aligned, 16 bytes.
/// @post a power of two
std::int64_t vector_limit(const AxisAnalysis& facts, const Access& access, int axis);

}  // namespace kiln::ir
