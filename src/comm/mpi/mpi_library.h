// An MPI library, opened when the program runs: the few functions that a Wire needs, for the two
// binary interfaces there are. In Open MPI's, objects are addresses; in MPICH's, which Intel MPI
// and Cray's share, numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/library.h"

namespace bloomery {

class MpiLibrary {
 public:
  enum class Abi { open_mpi, mpich };
  // Opens the library and calls MPI_Init_thread. Null where there is none. At most one in a
  // process.
  static std::shared_ptr<MpiLibrary> open(Abi abi);
  virtual ~MpiLibrary() = default;

  using Request = std::uint64_t;  // large enough for either interface

  virtual const std::string& name() const = 0;
  virtual int rank() = 0;
  virtual int size() = 0;
  virtual int largest_tag() = 0;
  // At most 2^30 bytes.
  virtual Request send(const void* data, std::size_t bytes, int peer, int tag) = 0;
  virtual Request receive(void* data, std::size_t bytes, int peer, int tag) = 0;
  virtual bool done(Request& request) = 0;
  virtual void finalize() = 0;
};

}  // namespace bloomery
