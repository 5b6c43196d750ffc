// The file that KILN_SIM_PROFILE names: written when a simulator goes and when the process ends.
#pragma once

namespace kiln::rt::sim {

class SimDevice;

/// From now on the device's launches are part of the file. Does nothing where KILN_SIM_PROFILE is empty.
void open_profile(SimDevice&);
/// The device goes: what it did stays part of the file, which is written.
void close_profile(SimDevice&) noexcept;

}  // namespace kiln::rt::sim
