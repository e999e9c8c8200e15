// A Wire of MPI's messages: the networks that an MPI library knows. Sums are formed by us, in rank
// order, as over TCP. Of disagreements between ranks MPI notices a message that is too long, and
// ends the run; others are found by the timeout.
#pragma once

#include <memory>

#include "comm/mpi/mpi_library.h"
#include "comm/wire.h"
#include "comm/world.h"

namespace bloomery {

// World rank i is rank i of MPI. One wire for a library.
std::unique_ptr<Wire> make_mpi_wire(std::shared_ptr<MpiLibrary> mpi, std::shared_ptr<World> world,
                                    int rank);

// The text of rank 0, on all ranks.
std::string mpi_broadcast(MpiLibrary& mpi, const std::string& text);

}  // namespace bloomery
