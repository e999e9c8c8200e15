// Two habits of numpy that decide Megatron's file names and orders.
#pragma once

#include <span>
#include <string>

namespace bloomery {

// str(array) of finite numbers of at least 0: eight digits, aligned, lines of 75 columns. Part of
// the text whose MD5 names the cache of a blend.
std::string numpy_text(std::span<const double> values);

// numpy.sum, which adds pairwise: the last bit depends on it.
double numpy_sum(std::span<const double> values);

}  // namespace bloomery
