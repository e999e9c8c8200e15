#include "samples/sequence_rows.h"

#include <algorithm>

#include "base/error.h"

namespace bloomery {
namespace {

std::int64_t sequence_length(const SampleFields& fields) {
  const auto tokens = std::ranges::find(fields, "tokens", &SampleField::name);
  check(tokens != fields.end(), "the samples have no tokens");
  return tokens->shape.numel();
}

}  // namespace

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
