// Sites: the prints and asserts of a function, as the host knows them.
#pragma once
#include <vector>

#include "backend/ir/function.h"
#include "runtime/image/report_record.h"

namespace kiln::ir {

/// The site of a print or assert. Copies of one instruction, such as those of an unrolled loop, are one site.
rt::ReportSite report_site(const Function& f, const Inst& inst);
/// All sites, each once, in program order: what a record's site number counts. The same before and after any pass.
std::vector<rt::ReportSite> report_sites(const Function& f);

}  // namespace kiln::ir
