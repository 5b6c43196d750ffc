// Embedding: rows of a table, picked by number.
#pragma once
#include "dsl/lib/matrix.h"

namespace kiln::lib {

/// y[i, c] = table[ids[i], c]; table [vocabulary, dim] and y [n, dim] of T with contiguous rows, ids [n] of Id, which
/// is std::int32_t or std::int64_t.
///
/// An id outside [0, vocabulary), a negative one too, gives a row of zeros, and nothing is read there: where every
/// device holds a part of the vocabulary, the sum of what they find is the embedding. Memory traffic: the rows picked,
/// and one write. Errors: UserError where table and y have rows of different length, or ids is no vector of n
/// contiguous elements; see also matrix.h. Example: `lib::embedding<bf16>(stream, {table, {vocabulary, dim}}, {ids,
/// {n}}, {y, {n, dim}});` or `lib::embedding<bf16, std::int32_t>(…)`.
template <Real T, class Id = std::int64_t>
requires(std::same_as<Id, std::int32_t> ||
         std::same_as<Id, std::int64_t>) void embedding(On, Matrix<const T> table, Vector<const Id> ids, Matrix<T> y);

}  // namespace kiln::lib
