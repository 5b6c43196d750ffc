// The library: fused operators, each a kernel of the language and a function that launches it.
#pragma once
#include "dsl/lib/norm.h"
#include "dsl/lib/softmax.h"
