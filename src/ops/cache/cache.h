// The keys and values of earlier tokens, for generation: with a Cache in its context, a model that
// is fed only the new tokens of each sequence computes what it would for the whole sequences.
// Sequences differ in length; attention layers ask for their own buffers at first use.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace bloomery {

// For each sequence of a pass, int32 on the device: the slot its tokens are kept in, how many it
// had before the pass, and how many of the batch's tokens are its new ones. The tokens of the batch
// after those are padding, which is neither kept nor looked at.
struct CachePlaces {
  const std::int32_t *slots = nullptr, *lengths = nullptr, *counts = nullptr;
  // The page of every kCachePage tokens of each slot, pages_per_slot of them; null: the tokens of a
  // slot lie one after the other.
  const std::int32_t* pages = nullptr;
  std::int32_t pages_per_slot = 0;

  bool operator==(const CachePlaces&) const = default;
};
inline constexpr std::int32_t kCachePageLog2 = 6, kCachePage = 1 << kCachePageLog2;
constexpr std::int64_t cache_pages(std::int64_t tokens) {
  return (tokens + kCachePage - 1) / kCachePage;
}

class Cache {
 public:
  // New tokens of a slot that has `length` already.
  struct Piece {
    std::int32_t slot = 0, length = 0, count = 0;
  };

  // Room for `capacity` tokens in each of `num_sequences` sequences, all empty. With `num_pages`
  // there is memory for so many pages only, and slots have those that set_pages() gives them. The
  // stream must outlive the cache.
  Cache(Stream& stream, std::int64_t num_sequences, std::int64_t capacity,
        std::int64_t num_pages = 0);

  std::int64_t num_sequences() const { return static_cast<std::int64_t>(sequences_.size()); }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t length(std::int64_t sequence) const;  // tokens, with those of the last begin()

  std::int32_t slot(std::int64_t sequence) const;

  // Comes before each forward pass: the batch holds counts[i] new tokens of sequence i.
  void begin(std::span<const std::int32_t> counts);
  // The same for slots that somebody else keeps account of.
  void begin(std::span<const Piece> pieces);
  // The same where only the device knows the places: a batch of `rows` that each have one new token
  // or none. Whoever wrote the places also keeps account of lengths: those here do not change.
  void begin(const CachePlaces& places, std::int64_t rows);
  // The pages of a slot from its first token on, which it may share with other slots. Of a cache
  // with pages, before tokens come.
  void set_pages(std::int32_t slot, std::span<const std::int32_t> pages);
  // The first tokens of a slot are also those of another; of pages that both have nothing is
  // copied.
  void copy_slot(std::int32_t from, std::int32_t to, std::int32_t length);
  // From now on sequence i is what parents[i] was; there may be fewer sequences than before, or
  // again as many as at first. Copies only where two sequences have one parent.
  void select(std::span<const std::int64_t> parents);

  // For models with an encoder, before the first pass: sequence i is about text i, of so many
  // tokens in text_length() places. Sequences keep their texts through select().
  void set_texts(std::span<const std::int32_t> lengths, std::int64_t text_length);
  std::int64_t num_texts() const { return text_lengths_ ? text_lengths_.numel() : 0; }
  std::int64_t text_length() const { return text_length_; }
  const std::int32_t* texts() const;         // by slot, int32 on the device
  const std::int32_t* text_lengths() const;  // by text, likewise
  // Keys and values [texts * text_length, num_groups, 2, head_dim] of a layer.
  void keep_text_layer(int number, Tensor kv) { text_layers_[number] = std::move(kv); }
  const Tensor& text_layer(int number) const;

  // Of the pass that begin() announced.
  CachePlaces places() const;
  std::int64_t num_rows() const { return num_rows_; }          // of the batch
  bool was_empty() const { return was_empty_; }                // no sequence had tokens before it
  std::int64_t batch_length() const { return batch_length_; }  // the largest of the counts
  // Of the pass's only sequence, with its new tokens; 0 where there are several, or only the device
  // knows.
  std::int64_t length_of_only() const { return length_of_only_; }

  // [slots, capacity, num_groups, 2, head_dim], or [pages, kCachePage, ..]: of each token and group
  // the key, then the value.
  const Tensor& layer(int number, DType dtype, std::int64_t num_groups, std::int64_t head_dim);
  // Bytes of a page in all layers that asked for their buffers, of a cache with pages.
  std::size_t page_bytes() const;
  // int32 zeros, one for each slot and group: scratch of kernels that leave zeros.
  const Tensor& arrivals() const { return arrivals_; }

 private:
  struct Sequence {
    std::int32_t slot = 0, length = 0;
    std::int32_t text = 0;
  };
  void upload_texts();
  void copy_tokens(std::int64_t from, std::int64_t to, std::int64_t count);

  Stream* stream_;
  std::int64_t num_slots_, capacity_, num_pages_, batch_length_ = 0, num_rows_ = 0;
  std::int64_t length_of_only_ = 0;
  bool was_empty_ = true;
  std::vector<Sequence> sequences_;
  Tensor own_places_;  // int32 [3, sequences]: slots, lengths, counts
  CachePlaces places_;
  std::int64_t pages_per_slot_ = 0;
  std::vector<std::int32_t> pages_;  // [slots, pages_per_slot]
  Tensor device_pages_;              // the same on the device
  std::map<int, Tensor> layers_;
  Tensor arrivals_;
  std::int64_t text_length_ = 0;
  Tensor texts_of_slots_, text_lengths_;  // int32; null: there are no texts
  std::map<int, Tensor> text_layers_;
};

}  // namespace bloomery
