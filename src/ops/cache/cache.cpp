#include "ops/cache/cache.h"

#include <algorithm>

namespace bloomery {

Cache::Cache(Stream& stream, std::int64_t num_sequences, std::int64_t capacity,
             std::int64_t num_pages)
    : stream_(&stream),
      num_slots_(num_sequences),
      capacity_(capacity),
      num_pages_(num_pages),
      sequences_(static_cast<std::size_t>(num_sequences)) {
  check(num_sequences >= 1 && capacity >= 1 && num_sequences <= INT32_MAX && capacity <= INT32_MAX,
        "cache: ", num_sequences, " sequences of ", capacity,
        " tokens; both must be from 1 to 2147483647");
  for (std::int32_t slot = 0; Sequence & sequence : sequences_) {
    sequence.slot = slot++;
  }
  if (num_pages > 0) {
    check(num_pages <= INT32_MAX, "cache: ", num_pages, " pages; 2147483647 are the most");
    pages_per_slot_ = cache_pages(capacity);
    pages_.assign(static_cast<std::size_t>(num_slots_ * pages_per_slot_), 0);
    device_pages_ = Tensor::zeros(stream, DType::int32, {num_slots_, pages_per_slot_});
  }
}

void Cache::set_pages(std::int32_t slot, std::span<const std::int32_t> pages) {
  check(slot >= 0 && slot < num_slots_ && std::ssize(pages) <= pages_per_slot_,
        "cache: ", pages.size(), " pages for slot ", slot, "; ", num_slots_, " slots have ",
        pages_per_slot_, " at most");
  for (const std::int32_t page : pages) {
    check(page >= 0 && page < num_pages_, "cache: there is no page ", page, " among ", num_pages_);
  }
  if (pages.empty()) {
    return;
  }
  const std::int64_t first = slot * pages_per_slot_;
  std::ranges::copy(pages, pages_.begin() + first);
  const Tensor now =
      Tensor::from_host(*stream_, std::vector(pages.begin(), pages.end()), {std::ssize(pages)});
  stream_->copy(static_cast<std::int32_t*>(device_pages_.data()) + first, now.data(), now.bytes());
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
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    pieces.push_back({sequences_[i].slot, sequences_[i].length, counts[i]});
  }
  begin(pieces);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sequences_[i].length += counts[i];
  }
}

void Cache::begin(std::span<const Piece> pieces) {
  const std::size_t n = pieces.size();
  std::vector<std::int32_t> places(3 * n);
  was_empty_ = true;
  batch_length_ = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto [slot, length, count] = pieces[i];
    check(count >= 0 && length + std::int64_t{count} <= capacity_, "cache: ", count,
          " tokens after ", length, " of sequence ", i, " do not fit its capacity of ", capacity_);
    places[i] = slot;
    places[n + i] = length;
    places[2 * n + i] = count;
    was_empty_ = was_empty_ && length == 0;
    batch_length_ = std::max<std::int64_t>(batch_length_, count);
  }
  own_places_ = Tensor::from_host(*stream_, places, {3, static_cast<std::int64_t>(n)});
  const auto* const data = static_cast<const std::int32_t*>(own_places_.data());
  places_ = {data, data + n, data + 2 * n};
  num_rows_ = static_cast<std::int64_t>(n);
  length_of_only_ = n == 1 ? pieces[0].length + std::int64_t{pieces[0].count} : 0;
}

void Cache::begin(const CachePlaces& places, std::int64_t rows) {
  check(rows >= 1 && rows <= num_slots_, "cache: a batch of ", rows, ", but there are ", num_slots_,
        " slots");
  places_ = places;
  num_rows_ = rows;
  batch_length_ = 1;
  length_of_only_ = 0;
  was_empty_ = false;
}

void Cache::select(std::span<const std::int64_t> parents) {
  check(num_pages_ == 0, "cache: sequences in pages cannot be reordered");
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
  if (texts_of_slots_ && !copies.empty()) {
    upload_texts();
  }
}

void Cache::set_texts(std::span<const std::int32_t> lengths, std::int64_t text_length) {
  check(lengths.size() == sequences_.size(), "cache: texts of ", lengths.size(),
        " sequences, but it holds ", sequences_.size());
  text_length_ = text_length;
  text_layers_.clear();
  text_lengths_ = Tensor::from_host(*stream_, std::vector(lengths.begin(), lengths.end()),
                                    {static_cast<std::int64_t>(lengths.size())});
  texts_of_slots_ = Tensor::empty(*stream_, DType::int32, {num_slots_});
  for (std::int32_t text = 0; Sequence & sequence : sequences_) {
    sequence.text = text++;
  }
  upload_texts();
}

// Where steps that a graph repeats read it: always in the same place.
void Cache::upload_texts() {
  std::vector<std::int32_t> texts(static_cast<std::size_t>(num_slots_), 0);
  for (const Sequence& sequence : sequences_) {
    texts[static_cast<std::size_t>(sequence.slot)] = sequence.text;
  }
  const Tensor now = Tensor::from_host(*stream_, texts, {num_slots_});
  stream_->copy(texts_of_slots_.data(), now.data(), now.bytes());
}

const std::int32_t* Cache::texts() const {
  check(static_cast<bool>(texts_of_slots_), "cache: there are no texts of an encoder");
  return static_cast<const std::int32_t*>(texts_of_slots_.data());
}

const std::int32_t* Cache::text_lengths() const {
  return static_cast<const std::int32_t*>(text_lengths_.data());
}

const Tensor& Cache::text_layer(int number) const {
  const auto found = text_layers_.find(number);
  check(found != text_layers_.end(), "cache: layer ", number,
        " has no keys and values of an encoder; the first pass must have its batch");
  return found->second;
}

// Numbers of tokens among all that the layers have room for.
void Cache::copy_tokens(std::int64_t from, std::int64_t to, std::int64_t count) {
  for (const auto& [number, layer] : layers_) {
    const std::size_t token_bytes =
        layer.bytes() / static_cast<std::size_t>(layer.shape()[0] * layer.shape()[1]);
    auto* const data = static_cast<char*>(layer.data());
    stream_->copy(data + static_cast<std::size_t>(to) * token_bytes,
                  data + static_cast<std::size_t>(from) * token_bytes,
                  static_cast<std::size_t>(count) * token_bytes);
  }
}

void Cache::copy_slot(std::int32_t from, std::int32_t to, std::int32_t length) {
  if (num_pages_ == 0) {
    return copy_tokens(from * capacity_, to * capacity_, length);
  }
  for (std::int64_t i = 0; i < cache_pages(length); ++i) {
    const std::int64_t theirs = pages_[static_cast<std::size_t>(from * pages_per_slot_ + i)];
    const std::int64_t ours = pages_[static_cast<std::size_t>(to * pages_per_slot_ + i)];
    if (theirs != ours) {
      copy_tokens(theirs * kCachePage, ours * kCachePage,
                  std::min<std::int64_t>(kCachePage, length - i * kCachePage));
    }
  }
}

std::size_t Cache::page_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [number, layer] : layers_) {
    bytes += layer.bytes() / static_cast<std::size_t>(num_pages_);
  }
  return bytes;
}

CachePlaces Cache::places() const {
  check(places_.slots != nullptr, "cache: begin() comes before a forward pass");
  CachePlaces places = places_;
  if (num_pages_ > 0) {
    places.pages = static_cast<const std::int32_t*>(device_pages_.data());
    places.pages_per_slot = static_cast<std::int32_t>(pages_per_slot_);
  }
  return places;
}

const Tensor& Cache::layer(int number, DType dtype, std::int64_t num_groups,
                           std::int64_t head_dim) {
  Tensor& layer = layers_[number];
  const Shape shape = num_pages_ > 0 ? Shape{num_pages_, kCachePage, num_groups, 2, head_dim}
                                     : Shape{num_slots_, capacity_, num_groups, 2, head_dim};
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
