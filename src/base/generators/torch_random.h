// torch.randperm on the CPU, for the order of `--dataloader-type cyclic`.
#pragma once

#include <cstdint>
#include <vector>

namespace bloomery {

// torch.randperm(count, generator=g) after g.manual_seed(seed). count < 2^32.
std::vector<std::uint32_t> torch_randperm(std::int64_t count, std::uint64_t seed);

}  // namespace bloomery
