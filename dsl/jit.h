// The place where front and back meet: Kernel::launch, preload and image are defined in jit.cpp, and the interpreter
// device, which runs tile IR without a compiler, is made here.
#pragma once
#include "runtime/device.h"

namespace kiln {

/// A device that runs every launch through the reference interpreter of the tile IR (backend/ir/eval.h), on host
/// memory. The first of the three oracles: no layouts, no PTX, no compiler. Each call makes a device of its own. As on
/// a GPU, a faulting kernel shows at synchronize(), download() or the next launch, as a DeviceError that holds the
/// user's line; afterwards the device is usable again.
Device interpreter();

}  // namespace kiln
