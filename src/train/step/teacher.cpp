#include "train/step/teacher.h"

#include "device/op_clock.h"
#include "models/family.h"
#include "train/run/initial_model.h"

namespace bloomery {
namespace {

const Head* head_of(const Model& model) {
  return dynamic_cast<const Head*>(model.blocks().back().get());
}

void check_pair(const ModelOptions& teacher, const ModelOptions& student) {
  check(find_family(teacher.family).dataset == find_family(student.family).dataset,
        "a teacher of the family ", teacher.family, " reads other samples than a student of ",
        student.family);
  check(teacher.vocabulary.size == student.vocabulary.size, "the teacher has a vocabulary of ",
        teacher.vocabulary.size, " tokens and the student one of ", student.vocabulary.size,
        ": they must share a tokenizer, whose tokens the teacher's logits are of");
}

}  // namespace

Teacher::Teacher(const TeacherOptions& options, const Model& student, Stream& stream, Mesh& mesh,
                 const StoreOptions& store_options)
    : options_(options),
      stream_(stream),
      frozen_(options.model, stream, mesh, store_options),
      head_(head_of(frozen_.model)),
      distillation_{.weight = options.weight,
                    .temperature = options.temperature,
                    .loss_name = options.loss_name} {
  check_pair(frozen_.model.options(), student.options());
  check(head_ != nullptr && head_of(student) != nullptr,
        "distillation is for models whose head predicts every token, unlike ",
        student.options().family);
  head_->collect(head_parameters_);
  frozen_.store->initialize(0);
}

void Teacher::load(const std::filesystem::path& folder) {
  load_model({stream_, *frozen_.store}, frozen_.model.options(), folder);
}

const Distillation& Teacher::teach(const Context& student) {
  const OpScope phase(stream_, OpKind::forward);
  Context context = student.with_batch(student.batch);
  context.tape = nullptr;
  context.metrics = nullptr;
  context.training = false;
  context.access = frozen_.store->access();
  const std::span blocks(frozen_.model.blocks());
  State state = run_blocks(context, {}, blocks.first(blocks.size() - 1), {});
  if (context.access != nullptr) {
    context.access->acquire(head_parameters_);
  }
  distillation_.teacher = head_->as_teacher(context, std::move(state));
  return distillation_;
}

void Teacher::dismiss() {
  distillation_.teacher = {};
  if (ParameterAccess* access = frozen_.store->access()) {
    access->release(head_parameters_);
  }
}

}  // namespace bloomery
