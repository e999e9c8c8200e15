// What tensors travel by between processes.
#pragma once

#include <cstdint>

namespace bloomery {

enum class Transport : std::uint8_t { automatic, tcp, mpi, nccl };

}  // namespace bloomery
