#include "ops/cache/cache.h"

#include <algorithm>

namespace bloomery {

Cache::Cache(Stream& stream, std::int64_t num_sequences, std::int64_t capacity)
    : stream_(&stream),
      num_slots_(num_sequences),
      capacity_(capacity),
      sequences_(static_cast<std::size_t>(num_sequences)) {
  check(num_sequences >= 1 && capacity >= 1 && num_sequences <= INT32_MAX && capacity <= INT32_MAX,
        "cache: ", num_sequences, " sequences of ", capacity,
        " tokens; both must be from 1 to 2147483647");
  for (std::int32_t slot = 0; Sequence & sequence : sequences_) {
    sequence.slot = slot++;
  }
}

std::int64_t Cache::length(std::int64_t sequence) const {
  return sequences_.at(static_cast<std::size_t>(sequence)).length;
}

std::int32_t Cache::slot(std::int64_t sequence) const {
  return sequences_.at(static_cast<std::size_t>(sequence)).slot;
}

void Cache::begin(std::span<const std::int32_t> counts) {
  check(counts.size() == sequences_.size(), "cache: new tokens of ", counts.size(),
        " sequences, but it holds ", sequences_.size());
  const std::size_t n = sequences_.size();
  std::vector<std::int32_t> places(3 * n);
  was_empty_ = true;
  batch_length_ = 0;
  for (std::size_t i = 0; i < n; ++i) {
    Sequence& sequence = sequences_[i];
    check(counts[i] >= 0 && sequence.length + std::int64_t{counts[i]} <= capacity_,
          "cache: ", counts[i], " tokens after ", sequence.length, " of sequence ", i,
          " do not fit its capacity of ", capacity_);
    places[i] = sequence.slot;
    places[n + i] = sequence.length;
    places[2 * n + i] = counts[i];
    was_empty_ = was_empty_ && sequence.length == 0;
    batch_length_ = std::max<std::int64_t>(batch_length_, counts[i]);
    sequence.length += counts[i];
  }
  own_places_ = Tensor::from_host(*stream_, places, {3, static_cast<std::int64_t>(n)});
  const auto* const data = static_cast<const std::int32_t*>(own_places_.data());
  places_ = {data, data + n, data + 2 * n};
  num_rows_ = num_sequences();
}

void Cache::begin(const CachePlaces& places, std::int64_t rows) {
  check(rows >= 1 && rows <= num_slots_, "cache: a batch of ", rows, ", but there are ", num_slots_,
        " slots");
  places_ = places;
  num_rows_ = rows;
  batch_length_ = 1;
  was_empty_ = false;
}

void Cache::select(std::span<const std::int64_t> parents) {
  check(!parents.empty() && static_cast<std::int64_t>(parents.size()) <= num_slots_,
        "cache: ", parents.size(), " sequences, but it has room for 1 to ", num_slots_);
  std::vector<bool> taken(static_cast<std::size_t>(num_slots_), false);
  std::vector<Sequence> chosen(parents.size());
  std::vector<std::size_t> copies;  // sequences whose parent's slot went to another child
  for (std::size_t i = 0; i < parents.size(); ++i) {
    check(parents[i] >= 0 && parents[i] < num_sequences(), "cache: there is no sequence ",
          parents[i], " among ", num_sequences());
    chosen[i] = sequences_[static_cast<std::size_t>(parents[i])];
    const auto slot = static_cast<std::size_t>(chosen[i].slot);
    if (taken[slot]) {
      copies.push_back(i);
    }
    taken[slot] = true;
  }
  std::size_t free = 0;
  for (const std::size_t i : copies) {
    free = static_cast<std::size_t>(
        std::find(taken.begin() + static_cast<std::ptrdiff_t>(free), taken.end(), false) -
        taken.begin());
    taken[free] = true;
    const auto slot = static_cast<std::int32_t>(free);
    copy_slot(chosen[i].slot, slot, chosen[i].length);
    chosen[i].slot = slot;
  }
  sequences_ = std::move(chosen);
}

void Cache::copy_slot(std::int32_t from, std::int32_t to, std::int32_t length) {
  for (const auto& [number, layer] : layers_) {
    const std::size_t slot_bytes = layer.bytes() / static_cast<std::size_t>(num_slots_);
    const std::size_t token_bytes = slot_bytes / static_cast<std::size_t>(capacity_);
    auto* const data = static_cast<char*>(layer.data());
    stream_->copy(data + static_cast<std::size_t>(to) * slot_bytes,
                  data + static_cast<std::size_t>(from) * slot_bytes,
                  static_cast<std::size_t>(length) * token_bytes);
  }
}

CachePlaces Cache::places() const {
  check(places_.slots != nullptr, "cache: begin() comes before a forward pass");
  return places_;
}

const Tensor& Cache::layer(int number, DType dtype, std::int64_t num_groups,
                           std::int64_t head_dim) {
  Tensor& layer = layers_[number];
  const Shape shape = {num_slots_, capacity_, num_groups, 2, head_dim};
  if (!layer) {
    layer = Tensor::empty(*stream_, dtype, shape);
  }
  if (const std::int64_t count = num_slots_ * num_groups; !arrivals_ || arrivals_.numel() < count) {
    arrivals_ = Tensor::zeros(*stream_, DType::int32, {count});
  }
  check(layer.dtype() == dtype && layer.shape() == shape, "cache: layer ", number, " holds ",
        layer.dtype(), layer.shape(), ", not ", dtype, shape);
  return layer;
}

}  // namespace bloomery
