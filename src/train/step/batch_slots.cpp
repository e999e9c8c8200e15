#include "train/step/batch_slots.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace bloomery {
namespace {

// All tensors that differ between micro-batches. The members of a batch are named one by one, so
// that a new one, which graphs would read as it was in the first micro-batch, does not compile
// until it is here.
auto tensors_of(auto& batch) {
  auto& [num_sequences, length, tokens, labels, loss_mask, positions, token_types, is_random,
         reference, key_begin, key_end, samples, places, whole, grad_scale, output_rows, encoder,
         encoder_key_begin, encoder_key_end, classes, scores, sample_weights] = batch;
  return std::array{&tokens,         &labels,    &loss_mask,   &positions,         &token_types,
                    &is_random,      &reference, &key_begin,   &key_end,           &samples,
                    &places,         &classes,   &output_rows, &encoder_key_begin, &encoder_key_end,
                    &sample_weights, &scores};
}

bool fits(const Batch& slots, const Batch& batch) {
  return slots.num_sequences == batch.num_sequences && slots.length == batch.length &&
         std::ranges::equal(
             tensors_of(slots), tensors_of(batch), [](const Tensor* slot, const Tensor* given) {
               return static_cast<bool>(*slot) == static_cast<bool>(*given) &&
                      (!*slot ||
                       (slot->dtype() == given->dtype() && slot->shape() == given->shape()));
             });
}

Batch slots_for(const Batch& batch, Stream& stream) {
  Batch slots = batch;
  slots.grad_scale = {};
  for (Tensor* const slot : tensors_of(slots)) {
    if (*slot) {
      *slot = Tensor::empty(stream, slot->dtype(), slot->shape());
    }
  }
  if (batch.encoder) {
    slots.encoder = std::make_shared<const Batch>(slots_for(*batch.encoder, stream));
  }
  return slots;
}

void copy(const Batch& from, const Batch& to, Stream& stream, const auto& is_known) {
  const auto given = tensors_of(from), slots = tensors_of(to);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (*given[i] && !is_known(given[i])) {
      stream.copy(slots[i]->data(), given[i]->data(), given[i]->bytes());
    }
  }
}

}  // namespace

bool BatchSlots::fill(const Batch& batch) {
  check(batch.whole == nullptr, "slots for a micro-batch: its sequences are divided");
  const bool fitted = batch_ && fits(*batch_, batch) &&
                      static_cast<bool>(batch_->encoder) == static_cast<bool>(batch.encoder) &&
                      (!batch.encoder || fits(*batch_->encoder, *batch.encoder));
  if (!fitted) {
    batch_.reset();  // before others are asked for
    batch_ = slots_for(batch, stream_);
  }
  const auto same = [&](const std::weak_ptr<Storage>& last, const Tensor& given) {
    return fitted && last.lock() == given.storage();
  };
  copy(batch, *batch_, stream_, [&](const Tensor* given) {
    return (given == &batch.positions && same(positions_, batch.positions)) ||
           (given == &batch.places && same(places_, batch.places));
  });
  positions_ = batch.positions.storage();
  places_ = batch.places.storage();
  if (batch.encoder) {
    copy(*batch.encoder, *batch_->encoder, stream_, [](const Tensor*) { return false; });
  }
  return fitted;
}

}  // namespace bloomery
