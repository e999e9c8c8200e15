// Classes of all characters as text, in runs: the length in hexadecimal (without one: 1), then a
// letter for the class, 'G' for class 0, 'H' for class 1 and so on to 'Z'; an 'a' before it adds
// 20, a 'b' 40 and so on.
#pragma once

namespace bloomery {

// visit(first, last, number of the class), in order.
template <class Visit>
constexpr void read_runs(const char* text, Visit visit) {
  char32_t first = 0, length = 0;
  int high = 0;
  for (; *text != '\0'; ++text) {
    if (*text >= 'a') {
      high = (*text - 'a' + 1) * 20;
      continue;
    }
    if (*text < 'G') {
      length = length * 16 + static_cast<char32_t>(*text <= '9' ? *text - '0' : *text - 'A' + 10);
      continue;
    }
    if (length == 0) length = 1;
    visit(first, first + length - 1, high + *text - 'G');
    first += length;
    length = 0;
    high = 0;
  }
}

}  // namespace bloomery
