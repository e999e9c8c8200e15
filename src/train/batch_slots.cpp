#include "train/batch_slots.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace bloomery {
namespace {

// All that differ between micro-batches.
constexpr std::array kTensors = {
    &Batch::tokens,          &Batch::labels,        &Batch::loss_mask,
    &Batch::positions,       &Batch::token_types,   &Batch::is_random,
    &Batch::reference,       &Batch::key_begin,     &Batch::key_end,
    &Batch::samples,         &Batch::places,        &Batch::output_rows,
    &Batch::classes,         &Batch::scores,        &Batch::encoder_key_begin,
    &Batch::encoder_key_end, &Batch::sample_weights};

bool fits(const Batch& slots, const Batch& batch) {
  return slots.num_sequences == batch.num_sequences && slots.length == batch.length &&
         std::ranges::all_of(kTensors, [&](Tensor Batch::*field) {
           const Tensor &slot = slots.*field, &given = batch.*field;
           return static_cast<bool>(slot) == static_cast<bool>(given) &&
                  (!slot || (slot.dtype() == given.dtype() && slot.shape() == given.shape()));
         });
}

Batch slots_for(const Batch& batch, Stream& stream) {
  Batch slots = batch;
  slots.grad_scale = {};
  for (Tensor Batch::*const field : kTensors) {
    if (const Tensor& given = batch.*field) {
      slots.*field = Tensor::empty(stream, given.dtype(), given.shape());
    }
  }
  if (batch.encoder) {
    slots.encoder = std::make_shared<const Batch>(slots_for(*batch.encoder, stream));
  }
  return slots;
}

void copy(const Batch& from, const Batch& to, Stream& stream, const auto& is_known) {
  for (Tensor Batch::*const field : kTensors) {
    if (const Tensor& given = from.*field; given && !is_known(field)) {
      stream.copy((to.*field).data(), given.data(), given.bytes());
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
  copy(batch, *batch_, stream_, [&](Tensor Batch::*field) {
    return (field == &Batch::positions && same(positions_, batch.positions)) ||
           (field == &Batch::places && same(places_, batch.places));
  });
  positions_ = batch.positions.storage();
  places_ = batch.places.storage();
  if (batch.encoder) {
    copy(*batch.encoder, *batch_->encoder, stream_, [](Tensor Batch::*) { return false; });
  }
  return fitted;
}

}  // namespace bloomery
