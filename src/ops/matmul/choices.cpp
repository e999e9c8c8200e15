#include "ops/matmul/choices.h"

namespace bloomery {

std::string MatmulKey::text() const {
  const std::string inputs = a_format == Fp8Format::none
                                 ? name(input)
                                 : concat(a_format, '*', b_format, fast_sums ? "~" : "");
  return concat(m, 'x', n, 'x', k, ':', transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', ':',
                inputs, ':', output, add ? "+" : "", ":e", epilogue, ":a", alignment);
}

MatmulChoices::MatmulChoices(Device& device)
    : device_(device.kind() == DeviceKind::cuda ? "cuda:" : "cpu:") {}

std::string MatmulChoices::find(const MatmulKey& key) const {
  const auto found = choices_.find(device_ + key.text());
  return found == choices_.end() ? std::string() : found->second;
}

void MatmulChoices::store(const MatmulKey& key, const std::string& choice) {
  choices_[device_ + key.text()] = choice;
}

void MatmulChoices::reject(const MatmulKey& key) {
  rejected_.push_back(concat(key.text(), ' ', find(key)));
}

std::vector<std::string> MatmulChoices::lines() const {
  std::vector<std::string> lines;
  for (const auto& [key, choice] : choices_) {
    lines.push_back(concat(key, ' ', choice));
  }
  return lines;
}

void MatmulChoices::load(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const std::size_t space = line.find(' ');
    check(space != std::string::npos && space > 0 && space + 1 < line.size(),
          "matmul choices: the line '", line, "' is not 'KEY CHOICE'");
    choices_[line.substr(0, space)] = line.substr(space + 1);
  }
}

}  // namespace bloomery
