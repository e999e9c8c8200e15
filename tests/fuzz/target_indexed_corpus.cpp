// .idx and .bin of a corpus. The first two bytes say how many bytes at the end are the .bin.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "corpus/index_file.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  if (input.size() < 2) {
    return;
  }
  std::uint16_t wanted = 0;
  std::memcpy(&wanted, input.data(), sizeof wanted);
  const std::size_t bin_size = std::min<std::size_t>(wanted, input.size() - 2);
  const auto idx = input.subspan(2, input.size() - 2 - bin_size);
  const auto bin = input.last(bin_size);
  const auto read = [&](std::uint64_t offset, void* to, std::size_t size) {
    if (offset > idx.size() || size > idx.size() - offset) {
      std::abort();  // a reader would leave the file
    }
    std::memcpy(to, idx.data() + offset, size);
  };
  const IndexArrays index(read, idx.size(), "fuzz.idx");
  index.check_arrays(bin.size());
  for (std::int64_t i = 0; i < index.num_sequences(); ++i) {
    const std::size_t size = size_of(index.type());
    const SequencePlace place = index.place(i);
    std::vector<TokenId> ids(static_cast<std::size_t>(place.length));
    decode_tokens(
        index.type(),
        bin.subspan(static_cast<std::size_t>(place.first_token) * size, ids.size() * size), ids);
  }
}

}  // namespace bloomery
