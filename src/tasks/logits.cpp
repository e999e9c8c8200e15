#include "tasks/logits.h"

#include <algorithm>
#include <optional>

#include "data/npy.h"
#include "generate/decoder.h"
#include "tasks/scorer.h"

namespace bloomery {
namespace {

// The real columns of all rows, in fp32.
std::vector<float> real_columns(Stream& stream, const Tensor& logits, std::int64_t vocabulary) {
  const std::int64_t rows = logits.shape()[0], columns = logits.shape()[1];
  std::vector<float> kept(static_cast<std::size_t>(rows * vocabulary));
  dispatch_floating(logits.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::vector<T> all = logits.to_host<T>(stream);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto begin = all.begin() + row * columns;
      std::transform(begin, begin + vocabulary, kept.begin() + row * vocabulary,
                     [](T value) { return static_cast<float>(value); });
    }
  });
  return kept;
}

}  // namespace

std::vector<std::int64_t> write_logits(LoadedModel& model, const TokenArrays& arrays,
                                       std::int64_t micro_batch_size,
                                       const std::filesystem::path& output) {
  const std::int64_t vocabulary = model.options().vocabulary.size;
  const auto length = static_cast<std::int64_t>(arrays.rows.at(0).size());
  for (std::size_t i = 0; i < arrays.rows.size(); ++i) {
    check_tokens(arrays.rows[i], vocabulary, concat("--ids: array ", i));
  }
  const auto positions = max_length(model.options());
  check(!positions || length <= *positions, "--ids: ", length,
        " tokens in an array, but the model has positions for ", positions.value_or(0));
  std::vector<std::int64_t> shape{length, vocabulary};
  if (!arrays.single) {
    shape.insert(shape.begin(), static_cast<std::int64_t>(arrays.rows.size()));
  }
  std::optional<NpyWriter> writer;  // of the first rank
  if (model.mesh().coordinate(Axis::tensor) == 0) {
    writer.emplace(output, NpyType::f32, shape);
  }
  for (std::size_t begin = 0; begin < arrays.rows.size();) {
    const std::size_t end =
        std::min(arrays.rows.size(), begin + static_cast<std::size_t>(micro_batch_size));
    const std::vector<std::span<const TokenId>> rows(
        arrays.rows.begin() + static_cast<std::ptrdiff_t>(begin),
        arrays.rows.begin() + static_cast<std::ptrdiff_t>(end));
    const Batch batch = upload_tokens(model.stream(), rows);
    const Tensor logits = model.logits(batch);
    if (writer) {
      const std::vector<float> numbers = real_columns(model.stream(), logits, vocabulary);
      writer->write(std::as_bytes(std::span(numbers)));
    }
    begin = end;
  }
  if (writer) {
    writer->commit();
  }
  return shape;
}

}  // namespace bloomery
