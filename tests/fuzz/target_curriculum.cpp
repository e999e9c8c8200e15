// The metrics of a curriculum (JSON) or, where the first byte is M, the .idx of a file of rows.
#include <cstdlib>

#include "fuzz.h"
#include "samples/curriculum/batches.h"
#include "samples/curriculum/row_index.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const std::string_view text = as_text(input);
  if (text.starts_with('M')) {
    const RowIndex index = parse_row_index(text, "fuzz.idx");
    if (size_of(index.type) == 0 || index.begins.back() < 0) {
      std::abort();
    }
    return;
  }
  for (const CurriculumMetric& metric : curriculum_metrics(std::string(text))) {
    const std::int64_t settled = metric.schedule.constant_from();
    for (const std::int64_t step : {std::int64_t{0}, std::int64_t{1}, settled, settled + 1}) {
      if (metric.schedule.at(step) < 0) {
        std::abort();
      }
    }
  }
}

}  // namespace bloomery
