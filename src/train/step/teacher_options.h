// The options of distillation from another model.
#pragma once

#include "nn/model_options.h"

namespace bloomery {

struct TeacherOptions {
  ModelOptions model;
  double weight = 1, temperature = 1;  // Distillation
  const char* loss_name = "kd loss";   // of what the teacher adds to the loss
};

}  // namespace bloomery
