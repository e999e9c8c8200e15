#include "evaluate/logits.h"

#include <algorithm>
#include <optional>

#include "corpus/npy.h"
#include "evaluate/scorer.h"
#include "generate/sequence_decoder.h"

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

void check_arrays(const LoadedModel& model, const TokenArrays& arrays, const char* flag) {
  for (std::size_t i = 0; i < arrays.rows.size(); ++i) {
    check_tokens(arrays.rows[i], model.options().vocabulary.size, concat(flag, ": array ", i));
  }
  const auto length = static_cast<std::int64_t>(arrays.rows.at(0).size());
  const auto positions = max_length(model.options());
  check(!positions || length <= *positions, flag, ": ", length,
        " tokens in an array, but the model has positions for ", positions.value_or(0));
}

// The numbers of a micro-batch, on the first data-parallel rank, from the one that computed them.
std::vector<float> to_first(LoadedModel& model, std::int64_t number, std::vector<float> numbers,
                            std::int64_t count) {
  const int ranks = model.mesh().degree(Axis::data), owner = static_cast<int>(number % ranks);
  const int rank = model.mesh().coordinate(Axis::data);
  if (owner == 0 || (rank != 0 && rank != owner)) {
    return numbers;
  }
  Stream& stream = model.stream();
  const Tensor sent = rank == 0 ? Tensor::empty(stream, DType::fp32, {count})
                                : Tensor::from_host(stream, numbers, {count});
  const Transfer transfer = rank == 0 ? Transfer{Transfer::Kind::receive, sent, owner}
                                      : Transfer{Transfer::Kind::send, sent, 0};
  model.mesh().axis(Axis::data).exchange(std::span(&transfer, 1), stream);
  return rank == 0 ? sent.to_host<float>(stream) : std::move(numbers);
}

Batch upload(Stream& stream, const TokenArrays& arrays, std::size_t begin, std::size_t end) {
  const std::vector<std::span<const TokenId>> rows(
      arrays.rows.begin() + static_cast<std::ptrdiff_t>(begin),
      arrays.rows.begin() + static_cast<std::ptrdiff_t>(end));
  return upload_tokens(stream, rows);
}

}  // namespace

std::vector<std::int64_t> write_logits(LoadedModel& model, const TokenArrays& arrays,
                                       std::int64_t micro_batch_size,
                                       const std::filesystem::path& output,
                                       const TokenArrays& decoded) {
  check(!model.options().task.any(), "the model of ", model.folder().string(),
        " has the head of a task, which gives no logits of tokens; finetune --task NAME --epochs 0 "
        "evaluates it");
  check_arrays(model, arrays, "--ids");
  if (model.has_encoder()) {
    check(decoded.rows.size() == arrays.rows.size(), "--decoder-ids has ", decoded.rows.size(),
          " arrays for the ", arrays.rows.size(),
          " of --ids: give what the decoder has written for ", "each, from its start token on");
    check_arrays(model, decoded, "--decoder-ids");
  }
  const TokenArrays& given = model.has_encoder() ? decoded : arrays;
  const std::int64_t vocabulary = model.options().vocabulary.size;
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(given.rows.at(0).size()), vocabulary};
  if (!given.single) {
    shape.insert(shape.begin(), static_cast<std::int64_t>(given.rows.size()));
  }
  std::optional<NpyWriter> writer;  // of the first rank
  const bool sends = model.mesh().coordinate(Axis::tensor) == 0;
  if (sends && model.mesh().coordinate(Axis::data) == 0) {
    writer.emplace(output, NpyType::f32, shape);
  }
  std::int64_t number = 0;
  for (std::size_t begin = 0, end = 0; begin < given.rows.size(); begin = end, ++number) {
    end = std::min(given.rows.size(), begin + static_cast<std::size_t>(micro_batch_size));
    std::vector<float> numbers;
    if (is_own_batch(model.mesh(), number)) {
      Batch batch = upload(model.stream(), given, begin, end);
      if (model.has_encoder()) {
        batch.encoder = std::make_shared<Batch>(upload(model.stream(), arrays, begin, end));
      }
      numbers = real_columns(model.stream(), model.logits(batch), vocabulary);
    }
    if (sends) {
      const auto rows = static_cast<std::int64_t>((end - begin) * given.rows[begin].size());
      numbers = to_first(model, number, std::move(numbers), rows * vocabulary);
    }
    if (writer) {
      writer->write(std::as_bytes(std::span(numbers)));
    }
  }
  if (writer) {
    writer->commit();
  }
  return shape;
}

}  // namespace bloomery
