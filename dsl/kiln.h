// Everything a kernel author and the program that launches kernels include.
#pragma once
#include "dsl/jit.h"
#include "dsl/lang/arrange.h"
#include "dsl/lang/dot.h"
#include "dsl/lang/kernel.h"
#include "dsl/lang/math.h"
#include "dsl/lang/ops.h"
#include "dsl/lang/params.h"
#include "dsl/lang/random.h"
#include "dsl/lang/sort.h"
#include "dsl/lang/view.h"
#include "runtime/base/error.h"
#include "runtime/device.h"
