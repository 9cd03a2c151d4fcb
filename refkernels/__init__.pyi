"""The types of the names that `__init__` loads when they are first used."""

from refkernels import activation_ref as activation_ref
from refkernels import attention_ref as attention_ref
from refkernels import binary_ref as binary_ref
from refkernels import clip_ref as clip_ref
from refkernels import convolution_ref as convolution_ref
from refkernels import distance_ref as distance_ref
from refkernels import dropout_ref as dropout_ref
from refkernels import elementary_ref as elementary_ref
from refkernels import embedding_ref as embedding_ref
from refkernels import experts_ref as experts_ref
from refkernels import fft_ref as fft_ref
from refkernels import frameworks as frameworks
from refkernels import fused_ref as fused_ref
from refkernels import layernorm_ref as layernorm_ref
from refkernels import loss_ref as loss_ref
from refkernels import matmul_ref as matmul_ref
from refkernels import metrology as metrology
from refkernels import norm_ref as norm_ref
from refkernels import optimizer_ref as optimizer_ref
from refkernels import quantization_ref as quantization_ref
from refkernels import reduction_ref as reduction_ref
from refkernels import registry as registry
from refkernels import scaled_attention_ref as scaled_attention_ref
from refkernels import scaled_matmul_ref as scaled_matmul_ref
from refkernels import scan_ref as scan_ref
from refkernels import schedule_ref as schedule_ref
from refkernels import softmax_ref as softmax_ref
from refkernels import testing as testing
from refkernels import trig_ref as trig_ref
from refkernels.arithmetic.enclosure import Enclosure as Enclosure
from refkernels.diagnosis.explain import explain as explain
from refkernels.diagnosis.probe import probe as probe
from refkernels.metrology import ulp_distance as ulp_distance
from refkernels.metrology import ulp_error as ulp_error
from refkernels.profiling.program import profile as profile
from refkernels.programs import oracle as oracle
from refkernels.reporting.frames import load_records as load_records
from refkernels.runs.measurement import measure as measure

__version__: str
__all__: list[str]
