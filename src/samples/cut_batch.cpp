#include "samples/cut_batch.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace bloomery {
namespace {

std::int64_t sequence_length(const SampleFields& fields) {
  const auto tokens = std::ranges::find(fields, "tokens", &SampleField::name);
  check(tokens != fields.end(), "the samples have no tokens");
  return tokens->shape.numel();
}

bool is_of_tokens(const SampleField& field, std::int64_t length) {
  return field.shape.rank() == 1 && field.shape[0] == length;
}

// Keys behind the last token are none.
void end_keys(const HostBatch& batch, std::int64_t length) {
  if (batch.find("key_end") != nullptr) {
    for (std::int32_t& end : batch.array<std::int32_t>("key_end")) {
      end = std::min(end, static_cast<std::int32_t>(length));
    }
  }
}

}  // namespace

SampleFields cut_fields(const SampleFields& fields, std::int64_t length) {
  SampleFields cut = fields;
  const std::int64_t whole = sequence_length(fields);
  for (SampleField& field : cut) {
    if (is_of_tokens(field, whole)) {
      field.shape = {length};
    }
  }
  return cut;
}

void copy_first_tokens(const HostBatch& from, const HostBatch& to) {
  for (std::size_t i = 0; i < from.fields().size(); ++i) {
    const SampleField& whole = from.fields()[i];
    const SampleField& cut = to.fields()[i];
    const std::size_t size = size_of(whole.dtype);
    const std::size_t step = static_cast<std::size_t>(whole.shape.numel()) * size;
    const std::size_t kept = static_cast<std::size_t>(cut.shape.numel()) * size;
    const auto* source = static_cast<const std::byte*>(from.data(whole));
    auto* target = static_cast<std::byte*>(const_cast<void*>(to.data(cut)));
    for (std::int64_t s = 0; s < from.num_samples(); ++s) {
      std::memcpy(target + static_cast<std::size_t>(s) * kept,
                  source + static_cast<std::size_t>(s) * step, kept);
    }
  }
  std::ranges::copy(from.samples(), to.samples().begin());
  end_keys(to, sequence_length(to.fields()));
}

std::int64_t reshaped_rows(std::int64_t samples, std::int64_t full, std::int64_t length) {
  if (length >= full) {
    return samples;
  }
  const std::int64_t text = full + 1, row = length + 1;
  const std::int64_t enough = (samples * text + row - 1) / row;
  const std::int64_t rows = std::min(enough, samples * (text / row + 1));
  return rows > 1 ? rows / 2 * 2 : rows;
}

void copy_rows(const HostBatch& from, HostBatch& to, const DocumentRules& rules) {
  const std::int64_t whole = sequence_length(from.fields());
  const std::int64_t row = sequence_length(to.fields()) + 1;
  const std::int64_t each = (whole + 1) / row;  // rows of a sample, without that of its end
  const auto tokens = from.array<TokenId>("tokens"), labels = from.array<TokenId>("labels");
  std::vector<TokenId> text(static_cast<std::size_t>(row));
  for (std::int64_t r = 0; r < to.num_samples(); ++r) {
    const bool is_end = r >= each * from.num_samples();
    const std::int64_t sample = is_end ? r - each * from.num_samples() : r / each;
    const std::int64_t number = is_end ? each : r % each;
    const std::int64_t first = is_end ? whole + 1 - row : number * row;
    for (std::int64_t i = 0; i < row; ++i) {  // the last token of a text is a label alone
      const std::int64_t at = first + i;
      text[i] = at < whole ? tokens[sample * whole + at] : labels[sample * whole + whole - 1];
    }
    write_text(text, rules, Sample(to, r));
    to.samples()[r] = from.samples()[sample] + (number << 40);
  }
}

}  // namespace bloomery
