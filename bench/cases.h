// The cases whose GPU time is measured, one row each: what `kiln bench` measures in a section and what `--serve` knows.
#pragma once
#include "bench/figure.h"
#include "bench/workload.h"

namespace kiln::bench {

struct CaseRow {
  const char* section;  ///< that measures it; "" for every section with cases
  const char* name;
  const char* dtype;
  std::vector<Shape> shapes;  ///< what the section measures; others of the same rank are answered by --serve
  /// Makes the buffers of a shape; every extent is positive.
  Workload (*prepare)(const Device&, const Shape&);
};

const std::vector<CaseRow>& case_rows();

/// The workload of `what`, of any shape of the row's rank. Throws UserError that says what is known for an unknown
/// case, and for a dtype or shape that the case does not have.
Workload prepare(const Device& device, const Case& what);

}  // namespace kiln::bench
