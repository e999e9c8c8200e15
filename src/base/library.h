// Libraries that are opened when a program runs, so that it starts without them.
#pragma once

#include <string>
#include <vector>

namespace bloomery {

class Library {
 public:
  // Whether others that are opened later see its names; some libraries load parts of themselves.
  enum class Names { own, global };

  // The first of the names that can be opened; it stays open to the end of the process. None where
  // no library is there.
  static Library open(const std::vector<std::string>& names, Names visible = Names::own);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& name() const { return name_; }
  void* find(const char* symbol) const;  // null: not there
  template <class Function>
  Function* function(const char* symbol) const {
    return reinterpret_cast<Function*>(find(symbol));
  }

 private:
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace bloomery
