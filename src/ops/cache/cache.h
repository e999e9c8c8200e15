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
};

class Cache {
 public:
  // Room for `capacity` tokens in each of `num_sequences` sequences, all empty. The stream must
  // outlive the cache.
  Cache(Stream& stream, std::int64_t num_sequences, std::int64_t capacity);

  std::int64_t num_sequences() const { return static_cast<std::int64_t>(sequences_.size()); }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t length(std::int64_t sequence) const;  // tokens, with those of the last begin()

  std::int32_t slot(std::int64_t sequence) const;

  // Comes before each forward pass: the batch holds counts[i] new tokens of sequence i.
  void begin(std::span<const std::int32_t> counts);
  // The same where only the device knows the places: a batch of `rows` that each have one new token
  // or none. Whoever wrote the places also keeps account of lengths: those here do not change.
  void begin(const CachePlaces& places, std::int64_t rows);
  // From now on sequence i is what parents[i] was; there may be fewer sequences than before, or
  // again as many as at first. Copies only where two sequences have one parent.
  void select(std::span<const std::int64_t> parents);

  // Of the pass that begin() announced.
  CachePlaces places() const;
  std::int64_t num_rows() const { return num_rows_; }          // of the batch
  bool was_empty() const { return was_empty_; }                // no sequence had tokens before it
  std::int64_t batch_length() const { return batch_length_; }  // the largest of the counts

  // [slots, capacity, num_groups, 2, head_dim]: of each token and group the key, then the value.
  const Tensor& layer(int number, DType dtype, std::int64_t num_groups, std::int64_t head_dim);
  // int32 zeros, one for each slot and group: scratch of kernels that leave zeros.
  const Tensor& arrivals() const { return arrivals_; }

 private:
  struct Sequence {
    std::int32_t slot = 0, length = 0;
  };
  void copy_slot(std::int32_t from, std::int32_t to, std::int32_t length);

  Stream* stream_;
  std::int64_t num_slots_, capacity_, batch_length_ = 0, num_rows_ = 0;
  bool was_empty_ = true;
  std::vector<Sequence> sequences_;
  Tensor own_places_;  // int32 [3, sequences]: slots, lengths, counts
  CachePlaces places_;
  std::map<int, Tensor> layers_;
  Tensor arrivals_;
};

}  // namespace bloomery
