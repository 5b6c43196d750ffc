// Counts allocations, to show that a path makes none.
#pragma once
#include <cstddef>

/// Calls of operator new by this thread so far, those of the libraries included. Linking count_allocations.cpp replaces
/// the operators of the whole program.
std::size_t allocations_so_far();
