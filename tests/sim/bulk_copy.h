// Pieces of programs with bulk copies.
#pragma once
#include <numeric>
#include <string>
#include <vector>

#include "tests/sim/schedules.h"
#include "tests/sim/thread_program.h"

namespace kiln::test::bulk {

using U32 = std::uint32_t;

inline const Shape kWarp{};
inline const Shape kOne{{1, 1, 1}, {1, 1, 1}, 0, {1, 1, 1}};
inline const std::string kMeet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";
inline const std::string kLoad = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ";
inline const std::string kStore = "cp.async.bulk.global.shared::cta.bulk_group ";

inline std::vector<U32> counted(U32 n, U32 first = 1000) {
  std::vector<U32> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

/// %r10: an mbarrier for one arrival; %r2: 2048 bytes of shared memory; %p8: thread 0; %r3: the thread's word of them.
inline const std::string kBegin =
    ".shared .align 8 .b8 bar[16]; .shared .align 128 .b8 tile[2048]; mov.u32 %r10, bar; mov.u32 %r2, tile; mad.lo.u32 "
    "%r3, %r1, 4, %r2; setp.eq.u32 %p8, %r1, 0; @%p8 mbarrier.init.shared::cta.b64 [%r10], 1; @%p8 "
    "fence.mbarrier_init.release.cluster; bar.sync 0;\n";
inline const std::string kAwait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r10], 0; @!%p7 bra W;\n";
inline const Shape kFour{{4, 1, 1}, {32, 1, 1}, 0, {4, 1, 1}};

}  // namespace kiln::test::bulk
