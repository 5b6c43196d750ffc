// The library: fused operators, each a kernel of the language and a function that launches it.
#pragma once
#include "dsl/lib/cross_entropy.h"
#include "dsl/lib/embedding.h"
#include "dsl/lib/epilogue.h"
#include "dsl/lib/linear.h"
#include "dsl/lib/norm.h"
#include "dsl/lib/pointwise.h"
#include "dsl/lib/reductions.h"
#include "dsl/lib/rope.h"
#include "dsl/lib/softmax.h"
#include "dsl/lib/sums.h"
#include "dsl/lib/transpose.h"
