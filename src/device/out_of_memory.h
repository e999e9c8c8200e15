// What a pool throws when its source has no more.
#pragma once

#include "base/error.h"

namespace bloomery {

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace bloomery
