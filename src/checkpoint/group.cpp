#include "checkpoint/group.h"

#include <algorithm>

namespace bloomery {
namespace {

std::vector<std::string> gather_texts(Communicator& communicator, Stream& stream,
                                      const std::string& mine) {
  const std::int64_t ranks = communicator.size();
  const auto length = static_cast<std::int64_t>(mine.size());
  const Tensor part = Tensor::from_host<std::int64_t>(stream, {length}, {1});
  const Tensor whole = Tensor::empty(stream, DType::int64, {ranks});
  communicator.all_gather(part, whole, stream);
  const auto lengths = whole.to_host<std::int64_t>(stream);
  const std::int64_t longest = std::max<std::int64_t>(1, *std::ranges::max_element(lengths));

  std::vector<std::uint8_t> padded(mine.begin(), mine.end());
  padded.resize(static_cast<std::size_t>(longest));
  const Tensor text = Tensor::from_host(stream, padded, {longest});
  const Tensor all = Tensor::empty(stream, DType::uint8, {ranks * longest});
  communicator.all_gather(text, all, stream);
  const auto bytes = all.to_host<std::uint8_t>(stream);
  std::vector<std::string> texts;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto begin = bytes.begin() + rank * longest;
    texts.emplace_back(begin, begin + lengths[static_cast<std::size_t>(rank)]);
  }
  return texts;
}

}  // namespace

SaveGroup single_rank_group() {
  return {.rank = 0, .size = 1, .gather = [](const std::string& mine) {
            return std::vector<std::string>{mine};
          }};
}

SaveGroup communicator_group(Communicator& communicator, Stream& stream) {
  return {.rank = communicator.rank(),
          .size = communicator.size(),
          .gather = [&communicator, &stream](const std::string& mine) {
            return gather_texts(communicator, stream, mine);
          }};
}

}  // namespace bloomery
