#include "train/step/batch_slots.h"

#include <algorithm>

#include "autograd/batch_fields.h"
#include "base/error.h"

namespace bloomery {
namespace {

// What a step has for all its micro-batches has a place of its own.
bool has_slot(const BatchField& field) { return field.per != BatchField::Per::step; }

bool fits(const Batch& slots, const Batch& batch) {
  return slots.num_sequences == batch.num_sequences && slots.length == batch.length &&
         std::ranges::all_of(kBatchFields, [&](const BatchField& field) {
           const Tensor &slot = slots.*field.tensor, &given = batch.*field.tensor;
           return !has_slot(field) ||
                  (static_cast<bool>(slot) == static_cast<bool>(given) &&
                   (!slot || (slot.dtype() == given.dtype() && slot.shape() == given.shape())));
         });
}

Batch slots_for(const Batch& batch, Stream& stream) {
  Batch slots = batch;
  slots.grad_scale = {};
  for (const BatchField& field : kBatchFields) {
    if (Tensor& slot = slots.*field.tensor) {
      slot = Tensor::empty(stream, slot.dtype(), slot.shape());
    }
  }
  if (batch.encoder) {
    slots.encoder = std::make_shared<const Batch>(slots_for(*batch.encoder, stream));
  }
  return slots;
}

void copy(const Batch& from, const Batch& to, Stream& stream, const auto& is_known) {
  for (const BatchField& field : kBatchFields) {
    const Tensor& given = from.*field.tensor;
    if (given && has_slot(field) && !is_known(given)) {
      stream.copy((to.*field.tensor).data(), given.data(), given.bytes());
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
  copy(batch, *batch_, stream_, [&](const Tensor& given) {
    return (&given == &batch.positions && same(positions_, given)) ||
           (&given == &batch.places && same(places_, given));
  });
  positions_ = batch.positions.storage();
  places_ = batch.places.storage();
  if (batch.encoder) {
    copy(*batch.encoder, *batch_->encoder, stream_, [](const Tensor&) { return false; });
  }
  return fitted;
}

}  // namespace bloomery
