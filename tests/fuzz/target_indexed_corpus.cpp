// .idx and .bin of a corpus. The first two bytes say how many bytes at the end are the .bin.
#include <algorithm>
#include <vector>

#include "data/index_file.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  if (input.size() < 2) {
    return;
  }
  const std::size_t bin_size =
      std::min<std::size_t>(load_value<std::uint16_t>(input.data()), input.size() - 2);
  const auto idx = input.subspan(2, input.size() - 2 - bin_size);
  const auto bin = input.last(bin_size);
  const IndexView index(idx, "fuzz.idx");
  index.check_arrays(bin.size(), [](std::size_t, std::size_t) {});
  for (std::int64_t i = 0; i < index.num_sequences(); ++i) {
    const std::size_t size = size_of(index.type());
    const auto first = static_cast<std::size_t>(index.first_token(i));
    std::vector<TokenId> ids(static_cast<std::size_t>(index.length(i)));
    decode_tokens(index.type(), bin.subspan(first * size, ids.size() * size), ids);
  }
}

}  // namespace bloomery
