#include "comm/host_group.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace bloomery {
namespace {

class SelfHostGroup final : public HostGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<std::string> gather(const std::string&, std::string mine, double) override {
    return {std::move(mine)};
  }
  void abort(const std::string&, bool) noexcept override {}
};

}  // namespace

std::string HostGroup::broadcast(const std::string& topic, std::string message, int root) {
  check(0 <= root && root < size(), "broadcast of ", topic, ": there is no rank ", root, " among ",
        size());
  return gather(topic, rank() == root ? std::move(message) : std::string())
      .at(static_cast<std::size_t>(root));
}

bool HostGroup::any(const std::string& topic, bool mine) {
  const std::vector<std::string> all = gather(topic, mine ? "yes" : "");
  return std::ranges::any_of(all, [](const std::string& said) { return !said.empty(); });
}

std::vector<std::vector<double>> HostGroup::gather_numbers(const std::string& topic,
                                                           const std::vector<double>& mine) {
  const auto* const bytes = reinterpret_cast<const char*>(mine.data());
  std::vector<std::vector<double>> all;
  for (const std::string& text : gather(topic, std::string(bytes, mine.size() * sizeof(double)))) {
    std::vector<double>& numbers = all.emplace_back(text.size() / sizeof(double));
    std::memcpy(numbers.data(), text.data(), numbers.size() * sizeof(double));
  }
  return all;
}

std::unique_ptr<HostGroup> make_self_host_group() { return std::make_unique<SelfHostGroup>(); }

}  // namespace bloomery
