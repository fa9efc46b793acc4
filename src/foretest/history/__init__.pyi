from .agreement_result import Agreement as Agreement
from .run import run_history as run_history
