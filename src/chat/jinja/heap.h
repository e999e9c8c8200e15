// What one rendering may use, and the memory of its lists, dicts and objects.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "chat/jinja/value.h"

namespace bloomery::jinja {

struct Limits {
  std::int64_t steps = 50'000'000;             // statements, expressions and rounds of loops
  std::int64_t bytes = std::int64_t{1} << 30;  // of all texts and lists made on the way
  int depth = 400;                             // statements and expressions inside each other
};

class Heap {
 public:
  explicit Heap(const Limits& limits) : limits_(limits) {}

  void step(std::int64_t count = 1) {
    steps_ += count;
    check(steps_ <= limits_.steps, "the template takes more than ", limits_.steps, " steps");
  }
  void charge(std::uint64_t bytes) {
    check(bytes <= static_cast<std::uint64_t>(limits_.bytes - bytes_),
          "the template makes more than ", limits_.bytes, " bytes");
    bytes_ += static_cast<std::int64_t>(bytes);
  }
  // For texts and lists that are about to be copied or repeated.
  void charge(std::uint64_t bytes, std::uint64_t times) {
    check(bytes == 0 || times <= static_cast<std::uint64_t>(limits_.bytes) / bytes,
          "the template makes more than ", limits_.bytes, " bytes");
    charge(bytes * times);
  }
  const Limits& limits() const { return limits_; }

  List* list(std::vector<Value> items = {}, ListForm form = ListForm::list) {
    charge(64 + items.size() * sizeof(Value));
    return &lists_.emplace_back(List{std::move(items), form});
  }
  Dict* dict() {
    charge(128);
    return &dicts_.emplace_back();
  }
  template <class T, class... Parts>
  T* object(Parts&&... parts) {
    charge(128);
    auto made = std::make_unique<T>(std::forward<Parts>(parts)...);
    T* const pointer = made.get();
    objects_.push_back(std::move(made));
    return pointer;
  }

 private:
  const Limits limits_;
  std::int64_t steps_ = 0, bytes_ = 0;
  std::deque<List> lists_;
  std::deque<Dict> dicts_;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace bloomery::jinja
