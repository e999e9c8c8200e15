#include "autograd/features.h"

#include "autograd/context.h"

namespace bloomery {

const Features kNoFeatures;

}  // namespace bloomery
