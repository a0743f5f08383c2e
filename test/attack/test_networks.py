"""Networks that are unusual."""

import os

import attack


class Networks(attack.Case):
    def attacked(self, name):
        data = os.environ.get("PARSEARCH_EXTERNAL_DATA")
        if not data:
            self.skipTest("PARSEARCH_EXTERNAL_DATA is not set")
        return os.path.join(data, "attack", name)

    def test_joint_search_folds_what_only_weights_decide(self):
        model = self.attacked("j_expand.onnx")
        done = self.plan("--model", model, "--cluster", "1x2xp100", "--search", "joint", "--simulation.training", "false", "--evaluations", "50")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("found by joint", done.out)
