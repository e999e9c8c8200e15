// Loads and stores between storage types and what arithmetic happens in, for CPU kernels. Plain
// loops over these vectorise at every instruction-set level.
#pragma once

#include "tensor/dtype.h"

namespace bloomery {

template <class T>
inline Accumulator<T> load(const T* from) {
  if constexpr (std::is_same_v<T, double>) {
    return *from;
  } else {
    return static_cast<float>(*from);
  }
}

template <class T>
inline void store(T* to, Accumulator<T> value) {
  *to = T(value);
}

}  // namespace bloomery
