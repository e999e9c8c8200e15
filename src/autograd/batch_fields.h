// The tensors of a Batch, listed once. What treats them all alike walks this table: the upload, the
// slots of CUDA graphs, the cuts of sequences.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "autograd/batch.h"

namespace bloomery {

struct BatchField {
  // What a tensor has a number for. A query is a token whose attention is computed here: where
  // ranks exchange tokens for heads it is one of Batch::whole. Rows are a list of any length. What
  // is per step is the same for all micro-batches of it.
  enum class Per : std::uint8_t { token, query, place, sequence, sample, row, step };

  std::string_view name;
  Tensor Batch::*tensor;
  DType dtype;
  Per per;
  bool of_samples = true;  // samples may have an array of this name, which becomes the tensor

  bool is_per_token() const { return per == Per::token || per == Per::query; }
};

inline constexpr std::array kBatchFields = [] {
  using enum BatchField::Per;
  return std::array{BatchField{"tokens", &Batch::tokens, DType::int32, token},
                    BatchField{"labels", &Batch::labels, DType::int32, token},
                    BatchField{"loss_mask", &Batch::loss_mask, DType::fp32, token},
                    BatchField{"positions", &Batch::positions, DType::int32, token},
                    BatchField{"token_types", &Batch::token_types, DType::int32, token},
                    BatchField{"is_random", &Batch::is_random, DType::int32, sequence},
                    BatchField{"reference", &Batch::reference, DType::fp32, sequence},
                    BatchField{"key_begin", &Batch::key_begin, DType::int32, query},
                    BatchField{"key_end", &Batch::key_end, DType::int32, query},
                    BatchField{"samples", &Batch::samples, DType::int64, sequence, false},
                    BatchField{"places", &Batch::places, DType::int32, place, false},
                    BatchField{"grad_scale", &Batch::grad_scale, DType::fp32, step, false},
                    BatchField{"output_rows", &Batch::output_rows, DType::int32, row, false},
                    BatchField{"encoder_key_begin", &Batch::encoder_key_begin, DType::int32, token},
                    BatchField{"encoder_key_end", &Batch::encoder_key_end, DType::int32, token},
                    BatchField{"classes", &Batch::classes, DType::int32, sample},
                    BatchField{"scores", &Batch::scores, DType::fp32, sample},
                    BatchField{"sample_weights", &Batch::sample_weights, DType::fp32, sample}};
}();
static_assert(sizeof(Batch) == 2 * sizeof(std::int64_t) + kBatchFields.size() * sizeof(Tensor) +
                                   2 * sizeof(std::shared_ptr<const Batch>),
              "each tensor of a Batch is a row of this table");

// Of an array of samples; null: no model reads it.
inline const BatchField* find_batch_field(std::string_view name) {
  const auto found = std::ranges::find(kBatchFields, name, &BatchField::name);
  return found == kBatchFields.end() || !found->of_samples ? nullptr : &*found;
}

}  // namespace bloomery
