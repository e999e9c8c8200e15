// The model that a student learns from besides its labels. It reads the same batches, without
// dropout, gradients or an optimizer, up to its last hidden states; logits are made of these in the
// student's head, chunk by chunk (parallel/distillation.h).
#pragma once

#include <filesystem>

#include "nn/head.h"
#include "train/step/frozen_model.h"
#include "train/step/teacher_options.h"

namespace bloomery {

class Teacher {
 public:
  // `student` is the model that it teaches, whole. An Error says why it cannot. Stream and mesh
  // must outlive it.
  Teacher(const TeacherOptions& options, const Model& student, Stream& stream, Mesh& mesh,
          const StoreOptions& store_options);

  // The weights of any checkpoint that we read.
  void load(const std::filesystem::path& folder);

  const Model& model() const { return frozen_.model; }
  const ParameterStore& store() const { return *frozen_.store; }
  const char* loss_name() const { return options_.loss_name; }

  void begin_pass() { frozen_.store->begin_pass(Pass::training); }
  // Reads the batch of the student's context. What a student's head learns from, until dismiss().
  const Distillation& teach(const Context& student);
  void dismiss();

 private:
  TeacherOptions options_;
  Stream& stream_;
  FrozenModel frozen_;
  const Head* head_;
  ParameterList head_parameters_;
  Distillation distillation_;
};

}  // namespace bloomery
