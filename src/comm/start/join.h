// From the facts of a start to ranks that reach each other.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/start/start.h"
#include "comm/tcp/control.h"
#include "comm/transport.h"

namespace bloomery {

class MpiLibrary;

struct JoinedWorld {
  JoinedWorld() = default;
  JoinedWorld(JoinedWorld&&) = default;
  ~JoinedWorld();  // leaves MPI, unless a rank has failed

  std::shared_ptr<MpiLibrary> mpi;  // of the launcher; null: none was found
  std::shared_ptr<ControlPlane> control;
  std::unique_ptr<HostGroup> host;  // of all ranks
};

// Collective over all processes of the start. An Error says who did not come or was not reached.
JoinedWorld join_world(const StartFacts& facts, double start_seconds = 300);

// The communicator of all ranks, for tensors on `device`. Automatic: NCCL where each rank has a GPU
// of its own, else MPI where the launcher brings it, else TCP. Collective; `timeout_seconds`: as
// long as one waits for another. An Error says why what is wanted cannot be had.
std::unique_ptr<Communicator> make_world(const JoinedWorld& joined, Transport wanted,
                                         const DeviceOptions& device, double timeout_seconds);

// The cores of this machine that are this rank's when it shares them with the others fairly: of a
// core that several ranks may use, each has a part. Collective.
int fair_cores(HostGroup& host);

}  // namespace bloomery
