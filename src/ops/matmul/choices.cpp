#include "ops/matmul/choices.h"

#include <fstream>

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
  const std::string text = device_ + key.text();
  for (const auto* choices : {&choices_, &earlier_}) {
    if (const auto found = choices->find(text); found != choices->end()) {
      return found->second;
    }
  }
  return {};
}

void MatmulChoices::store(const MatmulKey& key, const std::string& choice) {
  choices_[device_ + key.text()] = choice;
}

void MatmulChoices::keep_in(const std::filesystem::path& file) {
  file_ = file;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t space = line.find(' '); space != std::string::npos) {
      earlier_.emplace(line.substr(0, space), line.substr(space + 1));  // the first one counts
    }
  }
}

void MatmulChoices::store_timed(const MatmulKey& key, const std::string& choice) {
  store(key, choice);
  if (!file_.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(file_.parent_path(), ignored);
    std::ofstream(file_, std::ios::app) << concat(device_, key.text(), ' ', choice, '\n');
  }
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
