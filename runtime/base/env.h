// Environment knobs: env::KILN_LOG() and so on, generated from env.def, parsed once per process.
#pragma once
#include <cstdint>
#include <string>

namespace kiln::env {

using Bool = bool;
using Int = std::int64_t;
using String = std::string;

#define KILN_ENV(NAME, type, fallback, doc) const type& NAME();
#include "runtime/base/env.def"

/// The table of every knob with its type, default and meaning.
std::string help();
/// Reads the environment again; for tests, which must not do it while other threads run.
void reload();

}  // namespace kiln::env
