// expect: a pointer has no JSON form: use the value itself, std::optional or std::unique_ptr
#include <sluice/schema.hpp>

struct In {
  const int* number;
};
auto schema = sluice::schema_of<In>();
