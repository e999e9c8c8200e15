// How this process was started: which of how many ranks it is, and where the first one is found.
// Launchers tell it by environment variables. The set of one launcher is taken whole, never mixed
// with another's.
#pragma once

#include <map>
#include <string>

namespace bloomery {

struct StartFacts {
  // Whose variables told it, as said to people: "Open MPI's mpirun". Empty: one process by itself.
  std::string source;
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the processes of the same machine
  bool one_machine = false;            // the launcher says that all ranks are on this one
  // A pod of a PyTorchJob or JobSet: rank and size count pods, and nobody divided it into ranks.
  bool pod = false;
  // Where the first rank is reached; empty or 0: unknown, to be found by other means.
  std::string host;
  int port = 0;
  int listener = -1;      // of the first rank: a socket that waits there already; -1: none
  std::string node_file;  // the file whose first line is the first rank's machine; empty: none
  std::string job;        // the same for all ranks of a start and for no other; empty: unknown
  bool by_mpi = false;    // an MPI library can reach the others
  std::string secret;     // of the start, from BLOOMERY_SECRET; empty: nobody gave one

  std::string line() const;  // "rank 3 of 8, as Open MPI's mpirun says"
};

using Variables = std::map<std::string, std::string>;
Variables environment_variables();

// By precedence: `bloomery launch`, torchrun and Kubernetes, PALS, Open MPI, MPICH, srun. An Error
// for sets that are incomplete, no numbers, or that contradict each other.
StartFacts start_facts(const Variables& variables);

}  // namespace bloomery
